// Package logbook keeps what a test is told, by hooks above all, in its order.
package logbook

import (
	"fmt"
	"sync"
)

// Book is lines, maybe by several goroutines. The zero Book is empty.
type Book struct {
	mu    sync.Mutex
	lines []string
}

// Note adds a line.
func (l *Book) Note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// Take returns what was added since it was last called.
func (l *Book) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}
