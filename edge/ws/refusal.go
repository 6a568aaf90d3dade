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

// name is the connection's id; empty until it is bound.
func (c *conn) name() string {
	if s := c.session.Load(); s != nil {
		return s.Conn()
	}
	return ""
}
