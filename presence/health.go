package presence

// Health is how the connections to Redis fare.
type Health struct {
	Open, Idle uint32 // connections now
	Timeouts   uint64 // times none became free in time
	Stale      uint64 // connections closed because they had gone bad
}

// Health returns how the connections are; it asks nobody and does not block.
func (s *Store) Health() Health {
	p := s.rdb.PoolStats()
	return Health{Open: p.TotalConns, Idle: p.IdleConns, Timeouts: uint64(p.Timeouts), Stale: uint64(p.StaleConns)}
}
