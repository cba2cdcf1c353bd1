package yourtests

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
)

// The circuit is forced open: the state is there at once, and nothing but Release
// or Reset ends it.
func TestThePageDoesWithoutABannerWhileTheCircuitIsOpen(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "sale")
	}))
	defer server.Close()
	kit, err := holdfast.New(holdfast.Config{})
	require.NoError(t, err)
	client := &http.Client{Transport: httpmw.NewTransport(nil, kit)}

	text, err := Banner(client, server.URL) // the first call makes the breaker
	require.NoError(t, err)
	require.Equal(t, "sale", text)

	for _, b := range kit.Breakers() {
		b.ForceOpen("test")
	}
	text, err = Banner(client, server.URL)
	require.NoError(t, err)
	require.Empty(t, text)

	for _, b := range kit.Breakers() {
		b.Reset()
	}
	text, err = Banner(client, server.URL)
	require.NoError(t, err)
	require.Equal(t, "sale", text)
}

// wire is a transport without a network, which a bubble needs.
type wire func(*http.Request) (*http.Response, error)

func (w wire) RoundTrip(req *http.Request) (*http.Response, error) { return w(req) }

// The whole of an outage passes in a bubble, whose time is virtual: thirty seconds
// of silence take no time at all.
func TestTheBannerComesBackWithTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := true
		base := wire(func(req *http.Request) (*http.Response, error) {
			if silent {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("sale")), Request: req}, nil
		})
		kit, err := holdfast.New(holdfast.Config{})
		require.NoError(t, err)
		client := &http.Client{Transport: httpmw.NewTransport(base, kit), Timeout: time.Second}

		for range 10 { // as many as the standard policy needs to know
			_, err := Banner(client, "http://banners.test/")
			require.Error(t, err)
		}
		text, err := Banner(client, "http://banners.test/") // from now on it is refused
		require.NoError(t, err)
		require.Empty(t, text)

		silent = false
		time.Sleep(7 * time.Second) // longer than the cooldown with its jitter
		text, err = Banner(client, "http://banners.test/")
		require.NoError(t, err)
		require.Equal(t, "sale", text)
	})
}
