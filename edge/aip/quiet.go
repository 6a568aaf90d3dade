package aip

// Counter learns how many bytes have come over a connection. It must not block.
type Counter interface{ Count(bytes int) }

// Read implements net.Conn, for the one who does not read by ReadOnReady.
func (q *QuietConn) Read(b []byte) (int, error) {
	n, err := q.Conn.Read(b)
	q.count(n)
	return n, err
}

func (q *QuietConn) count(n int) {
	if q.counter != nil && n > 0 {
		q.counter.Count(n)
	}
}
