// Keeps the page up to date with what the server sends, piece by piece: an opened
// detail stays open, and a form that somebody is at is left alone.
"use strict";
(() => {
  const root = document.getElementById("live");
  const status = (word) => { document.body.className = word; };

  const busy = (el) => el.contains(document.activeElement) && document.activeElement.matches("input, button") ||
    [...el.querySelectorAll(".act input[name=reason]")].some((input) => input.value !== "");

  const keyed = (el) => [...el.children].filter((child) => child.dataset.key);

  // update makes the children of a place those of another, by their keys.
  const update = (place, next) => {
    const old = new Map(keyed(place).map((el) => [el.dataset.key, el]));
    let before = null;
    for (const el of [...next.children]) {
      const was = el.dataset.key && old.get(el.dataset.key);
      let stays = el;
      if (was) {
        old.delete(el.dataset.key);
        stays = merge(was, el);
      }
      const follows = before ? before.nextElementSibling : place.firstElementChild;
      if (follows !== stays) place.insertBefore(stays, follows);
      before = stays;
    }
    while (before ? before.nextElementSibling : place.firstElementChild) {
      (before ? before.nextElementSibling : place.firstElementChild).remove();
    }
  };

  // merge returns the element that is to stand for both.
  const merge = (was, el) => {
    if (was.isEqualNode(el)) return was;
    if (keyed(el).length > 0 && keyed(was).length > 0 && !el.matches("article, li, details")) {
      was.className = el.className;
      update(was, el);
      return was;
    }
    const list = el.querySelector(":scope > ul.calm"), had = was.querySelector(":scope > ul.calm");
    if (list && had) {
      update(had, list);
      was.querySelector("h2").replaceWith(el.querySelector("h2"));
      return was;
    }
    if (busy(was)) return was;
    for (const detail of was.querySelectorAll("details[open]")) {
      const same = [...el.querySelectorAll("details")].find((d) => d.dataset.key === detail.dataset.key);
      if (same) same.open = true;
    }
    if (was.matches("details[open]")) el.open = true;
    was.replaceWith(el);
    return el;
  };

  const show = (html) => {
    const next = document.createElement("div");
    next.innerHTML = html;
    update(root, next);
    const cut = [...root.querySelectorAll(".tile.open b, .tile.half_open b, .tile.forced_open b")]
      .reduce((sum, b) => sum + Number(b.textContent.replace(/\D/g, "")), 0);
    document.title = (cut > 0 ? `(${cut}) ` : "") + "holdfast";
  };

  const at = new URL(location.href);
  at.searchParams.set("live", "1");
  at.hash = "";
  const source = new EventSource(at);
  source.onopen = () => status("connected");
  source.onerror = () => status("lost");
  source.onmessage = (message) => show(message.data);
})();
