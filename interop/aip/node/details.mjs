// Details of a status, which stand in its metadata as a google.rpc.Status.
import grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs';

const { root } = protobuf.parse(`
  syntax = "proto3";
  package google.rpc;
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message Any { string type_url = 1; bytes value = 2; }
  message RetryInfo { Duration retry_delay = 1; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
`);
const Status = root.lookupType('google.rpc.Status');
const RetryInfo = root.lookupType('google.rpc.RetryInfo');
const key = 'grpc-status-details-bin';
const url = 'type.googleapis.com/google.rpc.RetryInfo';

// failure returns an error that ends a call with a status, whose details say when to try again.
export function failure(name, message, seconds, nanos) {
  const code = grpc.status[name];
  const metadata = new grpc.Metadata();
  const value = RetryInfo.encode({ retryDelay: { seconds, nanos } }).finish();
  metadata.set(key, Buffer.from(Status.encode({ code, message, details: [{ type_url: url, typeUrl: url, value }] }).finish()));
  return Object.assign(new Error(message), { code, details: message, metadata });
}

// retryAfter returns the seconds after which a status says to try again; undefined where it says nothing of that.
export function retryAfter(status) {
  for (const raw of status.metadata.get(key)) {
    const s = Status.decode(raw);
    if (s.code !== status.code || s.message !== status.details) throw new Error(`details of ${s.code} ${s.message}`);
    for (const any of s.details) {
      if (any.typeUrl !== url) continue;
      const { retryDelay } = RetryInfo.decode(any.value);
      return Number(retryDelay.seconds) + retryDelay.nanos / 1e9;
    }
  }
  return undefined;
}
