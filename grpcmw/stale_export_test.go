package grpcmw

// CacheCount returns for how many connections there is a cache.
func (i *Interceptors) CacheCount() int {
	i.caches.mu.Lock()
	defer i.caches.mu.Unlock()
	return len(i.caches.byConn)
}
