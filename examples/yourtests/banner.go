// Package yourtests shows how a program's own tests put a circuit into the state
// they are about. The program here asks another service for the banner of its
// front page, and does without one while that service is down.
package yourtests

import (
	"errors"
	"io"
	"net/http"

	"github.com/holdfast-go/holdfast/breaker"
)

// Banner returns the text of the banner, and "" where there is none to be had
// because the circuit is open.
func Banner(client *http.Client, url string) (string, error) {
	resp, err := client.Get(url)
	if errors.Is(err, breaker.ErrOpen) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}
