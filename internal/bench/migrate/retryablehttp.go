package migrate

import (
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/retryable"
)

func retryableBefore() *retryablehttp.Client {
	client := retryablehttp.NewClient()
	client.RetryMax = 2
	client.RetryWaitMin, client.RetryWaitMax = 50*time.Millisecond, 5*time.Second
	client.Logger = nil
	return client
}

// An SDK that brings such a client keeps it.
func retryableKept(client *retryablehttp.Client) error {
	kit, err := holdfast.New(holdfast.Config{}) // the standard policy: three attempts, where safe
	if err != nil {
		return err
	}
	return retryable.Install(client, kit)
}

// Code of your own needs no client but net/http's.
func retryableAfter() (*http.Client, error) {
	kit, err := holdfast.New(holdfast.Config{})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: httpmw.NewTransport(nil, kit)}, nil
}
