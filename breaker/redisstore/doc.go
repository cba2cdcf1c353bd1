// Package redisstore shares the state of breakers on Redis or Valkey.
package redisstore
