package natsd

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
)

// nodeLog passes on what an embedded node has to say. Its notices are of no interest to the one who embeds it.
type nodeLog struct {
	log   *slog.Logger
	fatal atomic.Pointer[error] // why the node can't start, which it tells its log alone
}

func (l *nodeLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *nodeLog) Warnf(format string, v ...any)   { l.log.Warn(fmt.Sprintf(format, v...)) }
func (l *nodeLog) Errorf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l *nodeLog) Debugf(string, ...any)           {}
func (l *nodeLog) Tracef(string, ...any)           {}

func (l *nodeLog) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.log.Error(text)
	err := errors.New(text)
	for _, arg := range v {
		if cause, is := arg.(error); is {
			err = cause
		}
	}
	l.fatal.CompareAndSwap(nil, &err)
}
