// Package enum names the values of the kit's small types.
package enum

import "strconv"

// Name returns the name of v, or kind and its number if it has none: "scope(7)".
func Name[T ~uint8](names []string, v T, kind string) string {
	if int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return kind + "(" + strconv.Itoa(int(v)) + ")"
}
