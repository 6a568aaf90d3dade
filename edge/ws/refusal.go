package ws

import "log/slog"

// attrs name the connection in the log.
func (c *conn) attrs() []slog.Attr {
	s := c.session.Load()
	if s == nil {
		return []slog.Attr{slog.String("from", c.From().String())}
	}
	return []slog.Attr{slog.String("agent", string(s.Agent())), slog.String("conn", s.Conn())}
}
