package iat

// field is a member of header or metadata that Agora reads, or takes out.
type field uint8

const (
	fID field = iota
	fParent
	fType
	fFrom
	fTo
	fTrace
	fTTL
	fToken
	fDeadline
	fReceipts
	fStream
	fRoot
	fRedelivered
	fieldCount
	noField
)

// paths are JSON pointers to the fields.
var paths = [fieldCount]string{
	fID: "/header/msg_id", fParent: "/header/parent_id", fType: "/header/type", fFrom: "/header/from", fTo: "/header/to",
	fTrace: "/metadata/trace_id", fTTL: "/metadata/ttl", fToken: "/metadata/auth_token",
	fDeadline: "/metadata/deadline_ms", fReceipts: "/metadata/receipts", fStream: "/metadata/stream",
	fRoot: "/metadata/workspace_root", fRedelivered: "/metadata/redelivered",
}

// headerField returns the field that a key of the header is.
func headerField(key []byte) field {
	switch string(key) {
	case "msg_id":
		return fID
	case "parent_id":
		return fParent
	case "type":
		return fType
	case "from":
		return fFrom
	case "to":
		return fTo
	}
	return noField
}

// metadataField returns the field that a key of metadata is.
func metadataField(key []byte) field {
	switch string(key) {
	case "trace_id":
		return fTrace
	case "ttl":
		return fTTL
	case "auth_token":
		return fToken
	case "deadline_ms":
		return fDeadline
	case "receipts":
		return fReceipts
	case "stream":
		return fStream
	case "workspace_root":
		return fRoot
	case "redelivered":
		return fRedelivered
	}
	return noField
}

// stays reports whether a field of metadata is forwarded as it came.
func (f field) stays() bool { return f == fTrace || f == fTTL || f == fStream || f == noField }
