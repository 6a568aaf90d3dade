"""What scenes expect, and wait for."""

import threading
import time

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status


def equal(got, want):
    assert got == want, f"{got!r} is not {want!r}"


def until(what, holds):
    """Waits for what must come true, for two minutes if need be."""
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end, f"not within two minutes: {what}"
        time.sleep(0.05)


def ended(status, code, words=None):
    """Expects a status. Any text will do where none is given."""
    equal((status.code().name, words and status.details()), (code, words))


def refused(do, code, words=None):
    """Expects what is done to be refused, and returns the status."""
    try:
        got = do()
    except grpc.RpcError as status:
        ended(status, code, words)
        return status
    raise AssertionError(f"{got!r} instead of {code}")


def retry_after(status):
    """Returns the seconds after which a status says to try again; None where it says nothing of that."""
    whole = rpc_status.from_call(status)  # which compares code and text with the status
    for detail in whole.details if whole else ():
        info = error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            return info.retry_delay.seconds + info.retry_delay.nanos / 1e9
    return None


class Working(threading.Thread):
    """Does something beside, whose exception join raises."""

    def __init__(self, do):
        super().__init__(daemon=True)
        self.do, self.fault = do, None
        self.start()

    def run(self):
        try:
            self.do()
        except BaseException as fault:
            self.fault = fault

    def join(self, timeout=None):
        super().join(timeout)
        if self.fault:
            raise self.fault
