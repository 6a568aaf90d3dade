package natsd

import (
	"fmt"
	"log/slog"
)

// nodeLog passes on what an embedded node has to say. Its notices are of no interest to whoever embeds it.
type nodeLog struct{ log *slog.Logger }

func (l nodeLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l nodeLog) Warnf(format string, v ...any)   { l.log.Warn(fmt.Sprintf(format, v...)) }
func (l nodeLog) Fatalf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l nodeLog) Errorf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l nodeLog) Debugf(string, ...any)           {}
func (l nodeLog) Tracef(string, ...any)           {}
