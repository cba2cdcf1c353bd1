package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// row is an order in the table: what is to be sent, and the key that it is sent
// with each time.
type row struct {
	Key   string `json:"key"`
	Order string `json:"order"`
}

// The states of a row.
const (
	pending  = "pending"
	sent     = "sent"
	rejected = "rejected" // the server does not want it: somebody has to look
)

// table is the application's own table of orders to be sent. It is a file to which
// lines are appended: one for each new row and one for each change of a row's
// state. With a database it is a table, and the row is inserted in the transaction
// that changes the application's other data.
type table struct {
	mu     sync.Mutex
	file   *os.File
	size   int64 // of the lines that are on the disk
	torn   bool  // there may be more behind them, of a line that failed
	rows   []row
	states map[string]string // by key
}

// line is what is written: a row, or the end of one.
type line struct {
	row
	State string `json:"state"`
}

// openTable opens a table, which is what it was when the program last ended, be it
// in the middle of a line.
func openTable(name string) (*table, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	t := &table{file: f, states: map[string]string{}}
	if err := t.read(); err != nil {
		f.Close()
		return nil, fmt.Errorf("table %s: %w", name, err)
	}
	return t, nil
}

func (t *table) read() error {
	r := bufio.NewReader(t.file)
	for {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // what is left was never acknowledged
		}
		if err != nil {
			return err
		}
		var l line
		if err := json.Unmarshal(bytes.TrimSpace(text), &l); err != nil {
			return err
		}
		t.apply(l)
		t.size += int64(len(text))
	}
	return t.file.Truncate(t.size)
}

func (t *table) apply(l line) {
	if l.State == pending {
		t.rows = append(t.rows, l.row)
	}
	t.states[l.Key] = l.State
}

// write appends a line. When it returns the line is on the disk. If it fails, what
// is there of the line is taken back, at the latest before the next one.
func (t *table) write(l line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.torn {
		if err := t.file.Truncate(t.size); err != nil {
			return err
		}
	}
	t.torn = true
	n, err := t.file.WriteAt(append(text, '\n'), t.size)
	if err == nil {
		err = t.file.Sync()
	}
	if err != nil {
		t.torn = t.file.Truncate(t.size) != nil
		return err
	}
	t.torn = false
	t.size += int64(n)
	t.apply(l)
	return nil
}

// insert takes an order into the table.
func (t *table) insert(r row) error { return t.write(line{r, pending}) }

// end marks a row that needs no more sending.
func (t *table) end(r row, state string) error { return t.write(line{row{Key: r.Key}, state}) }

// pending returns the rows that have no answer yet, oldest first.
func (t *table) pending() (rows []row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.rows {
		if t.states[r.Key] == pending {
			rows = append(rows, r)
		}
	}
	return rows
}

// count returns how many rows are in a state.
func (t *table) count(state string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.states {
		if s == state {
			n++
		}
	}
	return n
}

func (t *table) Close() error { return t.file.Close() }
