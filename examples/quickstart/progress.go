package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const frameTime = 100 * time.Millisecond

// draw shows the courses on the screen while they run. The returned function
// ends it and clears what it drew. A nil screen shows nothing.
func draw(screen io.Writer, kind string, p plan, courses map[string]*course) (stop func()) {
	if screen == nil {
		return func() {}
	}
	enough := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		tick := time.NewTicker(frameTime)
		defer tick.Stop()
		began := time.Now()
		for {
			frame := picture(kind, p, time.Since(began), courses)
			fmt.Fprint(screen, frame)
			up := fmt.Sprintf("\x1b[%dA\r", strings.Count(frame, "\n"))
			select {
			case <-enough:
				fmt.Fprint(screen, up+"\x1b[J") // to the top, and clear to the end
				return
			case <-tick.C:
				fmt.Fprint(screen, up)
			}
		}
	})
	return func() {
		close(enough)
		drawing.Wait()
	}
}

// picture is one frame.
func picture(kind string, p plan, at time.Duration, courses map[string]*course) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-11s %s %7s %7s %7s\n", kind+" client", ruler(p), "ok", "failed", "refused")
	for _, wire := range []string{"http", "grpc"} {
		strip := courses[wire].strip
		line := strip.String()
		if now := strip.cell(at); now+1 < len(line) {
			line = line[:now+1] + strings.Repeat(" ", len(line)-now-1) // what is to come
		}
		n := strip.counts()
		fmt.Fprintf(&b, "%11s %s %7d %7d %7d\n", wire, line, n[ok], n[failed], n[refused])
	}
	return b.String()
}
