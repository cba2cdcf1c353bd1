package memnet_test

import (
	"bufio"
	"context"
	"io"
	"log"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/memnet"
)

var (
	_ memnet.TB = testing.TB(nil)
	_ memnet.TB = (*rapid.T)(nil)
)

// echo answers with the protocol it was asked in and the request's body.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = w.Write(append([]byte(r.Proto+" "), body...))
})

// silent answers nothing until the request's context ends.
var silent = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
})

// quiet keeps failed TLS handshakes out of the test's output.
func quiet(s *http.Server, _ *http.Transport) { s.ErrorLog = log.New(io.Discard, "", 0) }

func post(t *testing.T, s *memnet.Server, body string) string {
	t.Helper()
	resp, err := s.Client().Post(s.URL+"/x", "text/plain", strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(got)
}

// everyProto runs a test over each protocol, in two bubbles.
func everyProto(t *testing.T, test func(*testing.T, memnet.Proto)) {
	for _, proto := range append(memnet.Protos(), memnet.HTTPS) {
		t.Run(string(proto), func(t *testing.T) {
			twice(t, func(t *testing.T) { test(t, proto) })
		})
	}
}

func TestEachProtocolIsTheOneOnTheWire(t *testing.T) {
	want := map[memnet.Proto]string{
		memnet.HTTP1: "HTTP/1.1", memnet.HTTPS: "HTTP/1.1",
		memnet.H2C: "HTTP/2.0", memnet.H2: "HTTP/2.0",
	}
	everyProto(t, func(t *testing.T, proto memnet.Proto) {
		s := memnet.Start(t, proto, echo)
		big := strings.Repeat("0123456789", 50_000)
		for range 5 {
			require.Equal(t, want[proto]+" hello", post(t, s, "hello"))
			require.Equal(t, want[proto]+" "+big, post(t, s, big))
		}
		require.Equal(t, 1, s.Wire.Accepted())
	})
}

func TestASilentHandlerEndsWithItsClient(t *testing.T) {
	everyProto(t, func(t *testing.T, proto memnet.Proto) {
		s := memnet.Start(t, proto, silent)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", s.URL, strings.NewReader("body"))
		require.NoError(t, err)
		begin := time.Now()
		_, err = s.Transport.RoundTrip(req)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 30*time.Second, time.Since(begin))
	})
}

func TestAnAnswerToABodyThatIsNotRead(t *testing.T) {
	everyProto(t, func(t *testing.T, proto memnet.Proto) {
		s := memnet.Start(t, proto, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}))
		resp, err := s.Client().Post(s.URL, "text/plain", strings.NewReader(strings.Repeat("x", 1<<20)))
		require.NoError(t, err)
		require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
	})
}

func TestASilentWireIsHeardLater(t *testing.T) {
	everyProto(t, func(t *testing.T, proto memnet.Proto) {
		s := memnet.Start(t, proto, echo)
		post(t, s, "warm")
		s.Wire.Silence(true)
		go func() {
			time.Sleep(time.Hour)
			s.Wire.Silence(false)
		}()
		begin := time.Now()
		require.Contains(t, post(t, s, "late"), "late")
		require.Equal(t, time.Hour, time.Since(begin))
	})
}

func TestARefusedDialIsSeenThroughTheTransport(t *testing.T) {
	everyProto(t, func(t *testing.T, proto memnet.Proto) {
		s := memnet.Start(t, proto, echo)
		s.Wire.Refuse(true)
		_, err := s.Client().Get(s.URL)
		requireDialError(t, err, syscall.ECONNREFUSED)
		s.Wire.Refuse(false)
		require.Contains(t, post(t, s, "up"), "up")
	})
}

func TestAResetIsSeenThroughTheTransport(t *testing.T) {
	everyProto(t, func(t *testing.T, proto memnet.Proto) {
		var wire *memnet.Listener
		s := memnet.Start(t, proto, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" {
				wire.Reset()
				<-r.Context().Done()
			}
		}))
		wire = s.Wire
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL, http.NoBody)
		require.NoError(t, err)
		_, err = s.Transport.RoundTrip(req)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		synctest.Wait()
		require.Equal(t, 0, s.Wire.Open())
		resp, err := s.Client().Get(s.URL)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 2, s.Wire.Accepted())
	})
}

// A test may leave at any moment: with handlers that sleep, requests that
// wait, a wire that is silent or dials that hang.
func TestClosingEndsWhateverIsStillGoingOn(t *testing.T) {
	for name, trouble := range map[string]func(*memnet.Listener){
		"none": func(*memnet.Listener) {}, "silence": func(l *memnet.Listener) { l.Silence(true) },
		"refused": func(l *memnet.Listener) { l.Refuse(true) }, "hanging": func(l *memnet.Listener) { l.Hang(true) },
	} {
		for when, before := range map[string]bool{"before": true, "during": false} {
			t.Run(name+" "+when, func(t *testing.T) {
				everyProto(t, func(t *testing.T, proto memnet.Proto) {
					sleeping := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						silent(w, r)
						time.Sleep(time.Minute)
					})
					s := memnet.Start(t, proto, sleeping, quiet)
					if before {
						trouble(s.Wire)
					}
					for range 3 {
						go func() {
							resp, err := s.Client().Post(s.URL, "text/plain", strings.NewReader("x"))
							if err == nil {
								_ = resp.Body.Close()
							}
						}()
					}
					synctest.Wait()
					if !before {
						trouble(s.Wire)
					}
				})
			})
		}
	}
}

// net/http does not end the context of a handler that left the body unread.
func TestClosingEndsAHandlerThatDoesNotRead(t *testing.T) {
	everyProto(t, func(t *testing.T, proto memnet.Proto) {
		s := memnet.Start(t, proto, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", s.URL, strings.NewReader("body"))
		require.NoError(t, err)
		_, err = s.Transport.RoundTrip(req)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestAHandlerCanTakeTheConnection(t *testing.T) {
	twice(t, func(t *testing.T) {
		s := memnet.Start(t, memnet.HTTP1, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart")
			_ = conn.(*memnet.Conn).CloseWrite()
			_ = conn.Close()
		}))
		resp, err := s.Client().Get(s.URL)
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, "part", string(got))
		require.NoError(t, resp.Body.Close())
	})
}

func TestTuneChangesServerAndTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memnet.Start(t, memnet.HTTP1, echo, func(srv *http.Server, tr *http.Transport) {
			srv.IdleTimeout = time.Second
			tr.DisableCompression = true
		})
		require.True(t, s.Transport.DisableCompression)
		post(t, s, "x")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 0, s.Wire.Open())
	})
}

func TestTheCertificateIsTrustedByItsPoolAloneAndForItsHostAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memnet.Start(t, memnet.H2, echo, quiet)
		_, err := s.Client().Get("https://other.test/")
		require.ErrorContains(t, err, "valid for api.test, not other.test")
		s.Transport.TLSClientConfig.RootCAs = nil
		_, err = s.Client().Get(s.URL)
		require.ErrorContains(t, err, "x509")
	})
}

// A raw client sees what a server writes on the wire.
func TestARawClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memnet.Start(t, memnet.HTTP1, echo)
		conn, err := s.Wire.Dial()
		require.NoError(t, err)
		defer conn.Close()
		write(t, conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "HTTP/1.1 hi", string(got))
	})
}
