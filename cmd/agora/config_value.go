package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a number of bytes: "16KiB", "1MiB", "4096".
type size int64

var units = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}

// Set reads a size.
func (s *size) Set(text string) error {
	unit := int64(1)
	for _, u := range units {
		if digits, ok := strings.CutSuffix(text, u.name); ok {
			text, unit = digits, u.bytes
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("want bytes, such as 4096, 16KiB or 1MiB")
	}
	*s = size(n * unit)
	return nil
}

// String returns the size in the largest unit that divides it.
func (s *size) String() string {
	text := strconv.FormatInt(int64(*s), 10)
	for _, u := range units {
		if int64(*s) >= u.bytes && int64(*s)%u.bytes == 0 {
			text = strconv.FormatInt(int64(*s)/u.bytes, 10) + u.name
		}
	}
	return text
}

// Type names the kind of value in the help.
func (*size) Type() string { return "size" }

// onOff is a switch that is written as on or off.
type onOff bool

// Set reads on or off.
func (o *onOff) Set(text string) error {
	if text != "on" && text != "off" {
		return fmt.Errorf("want on or off")
	}
	*o = text == "on"
	return nil
}

// String returns on or off.
func (o *onOff) String() string {
	if *o {
		return "on"
	}
	return "off"
}

// Type names the kind of value in the help.
func (*onOff) Type() string { return "on|off" }
