package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/agora-relay/agora/internal/await"
)

// pty is a terminal: a test sees what it shows, and types.
type pty struct {
	master, slave *os.File
	out           output
	reading       sync.WaitGroup
}

func openPTY(t *testing.T) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var unlock, n uint32
	size := [4]uint16{50, 250}
	ioctl(t, master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	ioctl(t, master, syscall.TIOCGPTN, unsafe.Pointer(&n))
	ioctl(t, master, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{master: master, slave: slave}
	t.Cleanup(func() {
		slave.Close()
		p.reading.Wait() // the last program that has it open has ended, or ends now
		master.Close()
	})
	return p
}

func ioctl(t *testing.T, f *os.File, request uintptr, arg unsafe.Pointer) {
	t.Helper()
	c, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var errno syscall.Errno
	if err := c.Control(func(fd uintptr) { _, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(arg)) }); err != nil || errno != 0 {
		t.Fatalf("terminal: %v, %v", err, errno)
	}
}

// start starts a program on the terminal.
func (p *pty) start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.slave, p.slave, p.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.slave.Close()
	p.reading.Go(func() { io.Copy(&p.out, p.master) }) // until no program has it open
}

// drained waits until all is read that programs have shown, once they have ended.
func (p *pty) drained(t *testing.T) {
	t.Helper()
	done := make(chan struct{})
	go func() { p.reading.Wait(); close(done) }()
	await.Recv(t, "the end of what the terminal shows", done)
}

func (p *pty) write(text string) { io.WriteString(p.master, text) }

// shown returns what the terminal shows, without the sign of an interrupt.
func (p *pty) shown() string {
	return strings.NewReplacer("\r\n", "\n", "^C", "").Replace(p.out.String())
}
