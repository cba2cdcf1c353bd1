package main

// rows is the table, in order.
func rows() []row {
	return append(append(circuitRows(), httpRows()...), streamRows()...)
}
