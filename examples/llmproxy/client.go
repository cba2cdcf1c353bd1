package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// completion is one request as the client saw it.
type completion struct {
	at     time.Time
	by     string        // who served it, says the proxy
	first  time.Duration // to the first token, 0 if there was none
	tokens int
	from   map[string]bool // the channels that the tokens name
	ok     bool            // it came to its end
	status int             // 0 if there was no answer
}

// ask makes a request and reads its tokens.
func ask(ctx context.Context, client *http.Client, url string) completion {
	c := completion{at: time.Now(), from: map[string]bool{}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions",
		strings.NewReader(`{"model":"any","stream":true,"messages":[{"role":"user","content":"Count."}]}`))
	if err != nil {
		return c
	}
	resp, err := client.Do(req)
	if err != nil {
		return c
	}
	defer resp.Body.Close()
	c.by, c.status = resp.Header.Get("X-Served-By"), resp.StatusCode
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, isData := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !isData:
		case data == "[DONE]":
			c.ok = c.tokens > 0
		default:
			if c.first == 0 {
				c.first = time.Since(c.at)
			}
			c.tokens++
			c.from[channelOf(data)] = true
		}
	}
	return c
}

// channelOf returns the channel that a token names: the first letter of its text.
func channelOf(event string) string {
	var chunk struct {
		Choices []struct{ Delta struct{ Content string } }
	}
	if json.Unmarshal([]byte(event), &chunk) != nil || len(chunk.Choices) == 0 || chunk.Choices[0].Delta.Content == "" {
		return "?"
	}
	return chunk.Choices[0].Delta.Content[:1]
}
