package broker

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if conf := os.Getenv(serverConf); conf != "" {
		serve(conf)
	}
	goleak.VerifyTestMain(m)
}
