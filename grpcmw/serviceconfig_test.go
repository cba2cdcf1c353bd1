package grpcmw_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// methods returns a service config with these entries of methodConfig.
func methods(entries ...string) string {
	return `{"methodConfig": [` + strings.Join(entries, ",") + `]}`
}

// entry returns an entry of methodConfig for test.Service with these fields.
func entry(fields string) string {
	return `{"name": [{"service": "test.Service"}], ` + fields + `}`
}

const retries = `"retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE", 10]}`

func TestG2_AServiceConfigBecomesPolicies(t *testing.T) {
	s, err := grpcmw.FromServiceConfig(`{
		"loadBalancingConfig": [{"round_robin": {}}],
		"healthCheckConfig": {"serviceName": ""},
		"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},
		"methodConfig": [
			{"name": [{}], "timeout": "9s", "waitForReady": true},
			{"name": [{"service": "test.Service"}, {"service": "test.Other", "method": null}], ` + retries + `},
			{"name": [{"service": "test.Service", "method": "Method"}], "timeout": ".5s", "maxRequestMessageBytes": 7, "maxResponseMessageBytes": 8},
			{"name": [{"service": "grpc.testing.TestService", "method": "UnaryCall"}], "timeout": "1.25s",
			 "hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.05s", "nonFatalStatusCodes": []}}
		]}`)
	require.NoError(t, err)
	budget := retry.Budget{Share: 0.1, Cap: 5, Initial: 5, PerSecond: 1e-6, Shared: true}

	require.Equal(t, holdfast.Policy{Timeout: &timeout.Limits{Total: 9 * time.Second}}, s.Default)
	require.Len(t, s.Methods, 4)
	for _, service := range []string{"test.Service", "test.Other"} {
		p := s.Methods[service]
		require.Equal(t, call.Idempotent, p.Safety)
		require.Equal(t, &retry.Policy{
			MaxAttempts: 4, Backoff: retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second, Factor: 2}, Budget: budget,
		}, p.Retry)
		require.True(t, p.Timeout.IsOff(), "the default's does not reach here")
		require.NotNil(t, p.Classify)
	}
	require.NotSame(t, s.Methods["test.Service"].Retry, s.Methods["test.Other"].Retry, "to be changed one by one")
	p := s.Methods["/test.Service/Method"]
	require.Equal(t, &timeout.Limits{Total: 500 * time.Millisecond}, p.Timeout)
	require.True(t, p.Retry.IsOff(), "nor does the service's")
	require.Equal(t, call.Unsafe, p.Safety)

	p = s.Methods["/grpc.testing.TestService/UnaryCall"]
	require.Equal(t, &retry.Policy{
		MaxAttempts: 3, Backoff: retry.NoWait(), Budget: budget, Hedge: retry.Hedge{Delay: 50 * time.Millisecond, Extra: 2},
	}, p.Retry)
	require.Equal(t, call.Idempotent, p.Safety)

	// An entry without anything left hides the default's from gRPC too.
	require.JSONEq(t, `{
		"loadBalancingConfig": [{"round_robin": {}}],
		"healthCheckConfig": {"serviceName": ""},
		"methodConfig": [
			{"name": [{}], "timeout": "9s", "waitForReady": true},
			{"name": [{"service": "test.Service"}, {"service": "test.Other", "method": null}]},
			{"name": [{"service": "test.Service", "method": "Method"}], "timeout": ".5s", "maxRequestMessageBytes": 7, "maxResponseMessageBytes": 8},
			{"name": [{"service": "grpc.testing.TestService", "method": "UnaryCall"}]}
		]}`, s.Connection)
	usable(t, s)
}

// usable makes a kit and a connection of a service config.
func usable(t *testing.T, s *grpcmw.ServiceConfig) {
	t.Helper()
	k, err := holdfast.New(holdfast.Config{Default: s.Default, Methods: s.Methods})
	require.NoError(t, err)
	_, err = grpcmw.New(k)
	require.NoError(t, err)
}

func TestAnEmptyServiceConfigSetsNothing(t *testing.T) {
	for _, text := range []string{`{}`, ` {"methodConfig": null} `, methods(`{"name": [{"service": "a.B"}]}`)} {
		s, err := grpcmw.FromServiceConfig(text)
		require.NoError(t, err)
		require.Equal(t, holdfast.Policy{}, s.Default)
		require.Empty(t, s.Connection)
		for _, p := range s.Methods {
			require.Equal(t, holdfast.Policy{}, p)
		}
	}
}

// A limit above the last wait is not lost, nor is one below the first.
func TestBackoffsOfAServiceConfig(t *testing.T) {
	s, err := grpcmw.FromServiceConfig(methods(entry(strings.ReplaceAll(retries, `"0.1s"`, `"3s"`))))
	require.NoError(t, err)
	require.Equal(t, retry.Backoff{Base: time.Second, Cap: time.Second, Factor: 2}, s.Methods["test.Service"].Retry.Backoff)
	usable(t, s)
}

func TestG2_WhatAServiceConfigCannotMeanIsAnError(t *testing.T) {
	retryWith := func(old, new string) string {
		require.Contains(t, retries, old)
		return methods(entry(strings.Replace(retries, old, new, 1)))
	}
	hedge := func(fields string) string { return methods(entry(`"hedgingPolicy": {` + fields + `}`)) }
	throttle := func(fields string) string { return `{"retryThrottling": {` + fields + `}}` }
	for name, c := range map[string]struct{ text, field string }{
		"empty":                   {``, "the text is empty"},
		"no JSON":                 {`{"methodConfig`, "is no JSON"},
		"two":                     {`{} {}`, "more text behind"},
		"no object":               {`[]`, "must be an object"},
		"unknown field":           {`{"methodConfigs": []}`, "methodConfigs"},
		"wrong case":              {`{"MethodConfig": []}`, "MethodConfig"},
		"twice":                   {`{"methodConfig": [{"name":[{}]}], "methodConfig": [{"name":[{}]}]}`, "methodConfig = [{\"name\":[{}]}]: is there twice"},
		"no list":                 {`{"methodConfig": {}}`, "methodConfig = {}"},
		"empty list":              {`{"methodConfig": []}`, "methodConfig = []"},
		"no entry":                {methods(`7`), "methodConfig[0] = 7"},
		"unknown in an entry":     {methods(entry(`"retry": {}`)), "methodConfig[0].retry"},
		"no name":                 {methods(`{}`), "methodConfig[0].name: is missing"},
		"empty name list":         {methods(`{"name": []}`), "methodConfig[0].name = []"},
		"method alone":            {methods(`{"name": [{"method": "M"}]}`), "methodConfig[0].name[0]"},
		"bad name":                {methods(`{"name": [{}, {"service": "a b"}]}`), "methodConfig[0].name[1]"},
		"slash":                   {methods(`{"name": [{"service": "/a.B"}]}`), "methodConfig[0].name[0]"},
		"name of another type":    {methods(`{"name": [{"service": 7}]}`), "methodConfig[0].name[0].service = 7"},
		"null name":               {methods(`{"name": [null]}`), "methodConfig[0].name[0] = null"},
		"no such method":          {methods(`{"name": [{"service": "grpc.testing.TestService", "method": "Unary"}]}`), "methodConfig[0].name[0]"},
		"duplicate":               {methods(entry(`"timeout": "1s"`), `{"name": [{"service": "a"}, {"service": "test.Service"}]}`), "methodConfig[1].name[1]"},
		"duplicate in one":        {methods(`{"name": [{}, {}]}`), "methodConfig[0].name[1]"},
		"no unit":                 {methods(entry(`"timeout": "1"`)), "methodConfig[0].timeout"},
		"minutes":                 {methods(entry(`"timeout": "1m"`)), "methodConfig[0].timeout"},
		"number":                  {methods(entry(`"timeout": 1`)), "methodConfig[0].timeout"},
		"no digits":               {methods(entry(`"timeout": ".s"`)), "methodConfig[0].timeout"},
		"ten decimals":            {methods(entry(`"timeout": "0.1234567890s"`)), "methodConfig[0].timeout"},
		"two points":              {methods(entry(`"timeout": "1.2.3s"`)), "methodConfig[0].timeout"},
		"zero":                    {methods(entry(`"timeout": "0s"`)), "methodConfig[0].timeout"},
		"negative":                {methods(entry(`"timeout": "-1s"`)), "methodConfig[0].timeout"},
		"beyond 292 years":        {methods(entry(`"timeout": "9223372037s"`)), "methodConfig[0].timeout"},
		"waitForReady":            {methods(entry(`"waitForReady": "true"`)), "methodConfig[0].waitForReady"},
		"size":                    {methods(entry(`"maxRequestMessageBytes": "7"`)), "methodConfig[0].maxRequestMessageBytes"},
		"one attempt":             {retryWith(`4`, `1`), "methodConfig[0].retryPolicy.maxAttempts = 1"},
		"half an attempt":         {retryWith(`4`, `2.5`), "methodConfig[0].retryPolicy.maxAttempts = 2.5"},
		"six attempts":            {retryWith(`4`, `6`), "methodConfig[0].retryPolicy.maxAttempts = 6: gRPC makes no more than 5"},
		"no attempts":             {retryWith(`"maxAttempts": 4, `, ``), "methodConfig[0].retryPolicy.maxAttempts: is missing"},
		"no initialBackoff":       {retryWith(`"initialBackoff": "0.1s", `, ``), "methodConfig[0].retryPolicy.initialBackoff: is missing"},
		"no maxBackoff":           {retryWith(`"maxBackoff": "1s", `, ``), "methodConfig[0].retryPolicy.maxBackoff: is missing"},
		"no multiplier":           {retryWith(`"backoffMultiplier": 2, `, ``), "methodConfig[0].retryPolicy.backoffMultiplier: is missing"},
		"shrinking":               {retryWith(`2,`, `0.5,`), "methodConfig[0].retryPolicy.backoffMultiplier = 0.5"},
		"no codes":                {retryWith(`, "retryableStatusCodes": ["UNAVAILABLE", 10]`, ``), "methodConfig[0].retryPolicy.retryableStatusCodes: is missing"},
		"empty codes":             {retryWith(`["UNAVAILABLE", 10]`, `[]`), "methodConfig[0].retryPolicy.retryableStatusCodes = []"},
		"unknown code":            {retryWith(`10]`, `"BUSY"]`), "methodConfig[0].retryPolicy.retryableStatusCodes[1]"},
		"code out of range":       {retryWith(`10]`, `17]`), "methodConfig[0].retryPolicy.retryableStatusCodes[1] = 17"},
		"null code":               {retryWith(`10]`, `null]`), "methodConfig[0].retryPolicy.retryableStatusCodes[1] = null"},
		"OK":                      {retryWith(`10]`, `"OK"]`), "methodConfig[0].retryPolicy.retryableStatusCodes[1]"},
		"cancelled":               {retryWith(`10]`, `"CANCELLED"]`), "methodConfig[0].retryPolicy.retryableStatusCodes[1]"},
		"data loss":               {retryWith(`10]`, `"DATA_LOSS"]`), "methodConfig[0].retryPolicy.retryableStatusCodes[1]"},
		"perAttemptRecvTimeout":   {retryWith(`"maxAttempts": 4`, `"maxAttempts": 4, "perAttemptRecvTimeout": "1s"`), "methodConfig[0].retryPolicy.perAttemptRecvTimeout"},
		"both":                    {methods(entry(retries + `, "hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "1s"}`)), "methodConfig[0].hedgingPolicy"},
		"hedging, one attempt":    {hedge(`"maxAttempts": 1, "hedgingDelay": "1s"`), "methodConfig[0].hedgingPolicy.maxAttempts = 1"},
		"hedging, no attempts":    {hedge(`"hedgingDelay": "1s"`), "methodConfig[0].hedgingPolicy.maxAttempts: is missing"},
		"hedging at once":         {hedge(`"maxAttempts": 2, "hedgingDelay": "0s"`), "methodConfig[0].hedgingPolicy.hedgingDelay"},
		"hedging without a delay": {hedge(`"maxAttempts": 2`), "methodConfig[0].hedgingPolicy.hedgingDelay: is missing"},
		"hedging, bad code":       {hedge(`"maxAttempts": 2, "hedgingDelay": "1s", "nonFatalStatusCodes": ["OK"]`), "methodConfig[0].hedgingPolicy.nonFatalStatusCodes[0]"},
		"no tokens":               {throttle(`"tokenRatio": 0.1`), "retryThrottling.maxTokens: is missing"},
		"no ratio":                {throttle(`"maxTokens": 10`), "retryThrottling.tokenRatio: is missing"},
		"too many tokens":         {throttle(`"maxTokens": 1001, "tokenRatio": 0.1`), "retryThrottling.maxTokens = 1001"},
		"too few tokens":          {throttle(`"maxTokens": 1, "tokenRatio": 0.1`), "retryThrottling.maxTokens = 1"},
		"a large ratio":           {throttle(`"maxTokens": 10, "tokenRatio": 1.5`), "retryThrottling.tokenRatio = 1.5"},
		"a negative ratio":        {throttle(`"maxTokens": 10, "tokenRatio": -1`), "retryThrottling.tokenRatio = -1"},
		"throttling is no object": {`{"retryThrottling": 7}`, "retryThrottling = 7"},
		"policy is no object":     {methods(entry(`"retryPolicy": 7`)), "methodConfig[0].retryPolicy = 7"},
		"hedging is no object":    {methods(entry(`"hedgingPolicy": []`)), "methodConfig[0].hedgingPolicy = []"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := grpcmw.FromServiceConfig(c.text)
			require.ErrorContains(t, err, c.field)
			require.ErrorContains(t, err, "grpcmw: ")
			require.Nil(t, s)
			require.LessOrEqual(t, strings.Count(err.Error(), "\n"), 0, "one fault, one line: %v", err)
		})
	}
}

func TestEveryFaultOfAServiceConfigIsNamed(t *testing.T) {
	_, err := grpcmw.FromServiceConfig(methods(entry(`"timeout": "0s", "waitForReady": 1`), `{"name": [{}], "timeout": 5}`))
	for _, field := range []string{"methodConfig[0].timeout", "methodConfig[0].waitForReady", "methodConfig[1].timeout"} {
		require.ErrorContains(t, err, field)
	}
}

func TestAServiceConfigIsMerged(t *testing.T) {
	s, err := grpcmw.FromServiceConfig(methods(
		`{"name": [{}], "timeout": "9s"}`,
		`{"name": [{"service": "test.Service", "method": "Method"}], "timeout": "1s", `+retries+`}`))
	require.NoError(t, err)
	own := holdfast.Config{
		Name:    "mine",
		Default: holdfast.Policy{Breaker: breaker.Off()},
		Methods: map[string]holdfast.Policy{
			"test.Service/Method": {Breaker: &breaker.Config{Failures: 2}, Safety: call.ReadOnly},
			"test.Other":          {Retry: retry.Off()},
		},
	}
	c, err := s.Merge(own)
	require.NoError(t, err)
	require.Equal(t, "mine", c.Name)
	require.True(t, c.Default.Breaker.IsOff())
	require.Equal(t, 9*time.Second, c.Default.Timeout.Total)
	require.Len(t, c.Methods, 2)
	p := c.Methods["test.Service/Method"]
	require.Equal(t, 2, p.Breaker.Failures)
	require.Equal(t, call.ReadOnly, p.Safety)
	require.Equal(t, 4, p.Retry.MaxAttempts)
	require.NotNil(t, p.Classify)
	require.Nil(t, own.Methods["test.Service/Method"].Retry, "the caller's own is left alone")
	require.Nil(t, own.Default.Timeout)
	_, err = holdfast.New(c)
	require.NoError(t, err)

	own.Default.Timeout = timeout.Off()
	own.Methods["test.Service/Method"] = holdfast.Policy{Retry: retry.Off()}
	_, err = s.Merge(own)
	require.ErrorContains(t, err, "Default.Timeout: ")
	require.ErrorContains(t, err, `Methods["test.Service/Method"].Retry: `)

	c, err = s.Merge(holdfast.Config{})
	require.NoError(t, err)
	require.Contains(t, c.Methods, "/test.Service/Method")
}

// What is taken for a config is one to gRPC too, and what is left for gRPC is as
// good to it as the whole.
func FuzzFromServiceConfig(f *testing.F) {
	f.Add(methods(entry(retries)))
	f.Add(methods(entry(`"timeout": "1.000000001s", "waitForReady": false`), `{"name": [{}], "maxRequestMessageBytes": 1e3}`))
	f.Add(methods(entry(`"hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "0.001s", "nonFatalStatusCodes": [14, "ABORTED"]}`)))
	f.Add(`{"retryThrottling": {"maxTokens": 1000, "tokenRatio": 1}, ` + methods(entry(retries))[1:])
	f.Add(`{"loadBalancingPolicy": "round_robin", "loadBalancingConfig": [{"pick_first": {}}], "healthCheckConfig": null}`)
	f.Add(`{"loadBalancingConfig": 7}`)
	f.Add(`{"methodConfig": [{"name": [{}, {"service": "a.B"}, {"service": "a.B", "method": "C"}, {"method": "C"}], "timeout": "1"}]}`)
	f.Add(`{"methodConfig": [{"name": [{"service": "a.B"}]}, {"name": [{"service": "a.B"}]}], "methodConfig": null}`)
	f.Add(methods(entry(`"retryPolicy": {"maxAttempts": 1, "initialBackoff": "0s", "maxBackoff": "x", "backoffMultiplier": -1, "retryableStatusCodes": [0, 99, "NONE"]}`)))
	f.Add(methods(entry(`"retryPolicy": {"maxAttempts": 2}, "hedgingPolicy": {"maxAttempts": 2}`)))
	f.Add(`{"retryThrottling": {"maxTokens": 1001, "tokenRatio": -0.1}}`)
	f.Add("{\"methodConfig\": [{\"name\": [{\"service\": \"\\u0061\"}], \"timeout\": \"9223372036.854775807s\"}]}")
	f.Add("{\"\xff\": 1, \"\xff\": 2}")
	f.Add(``)
	f.Add(`[[[[`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := grpcmw.FromServiceConfig(text)
		if err != nil {
			require.Nil(t, s)
			return
		}
		usable(t, s)
		whole := accepted(text)
		if s.Connection == "" {
			require.NoError(t, whole)
			return
		}
		left := accepted(s.Connection)
		require.Equal(t, whole == nil, left == nil, "%v, %v", whole, left)
	})
}

// accepted asks gRPC about a service config.
func accepted(text string) error {
	cc, err := grpc.NewClient("passthrough:///nowhere", grpc.WithTransportCredentials(insecureCredentials), grpc.WithDefaultServiceConfig(text))
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return cc.Close()
}
