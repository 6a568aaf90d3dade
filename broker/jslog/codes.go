package jslog

// Codes of the server's that mean something to us.
const (
	CodeNoPeers        = 10005
	CodeNoAccount      = 10039 // JetStream is not enabled for the account
	CodeResources      = 10023
	CodeMemory         = 10028
	CodeStorage        = 10047
	CodeWrongLast      = 10071 // the fence is not where the record expects it
	CodeReplicas       = 10074
	CodeNoJetStream    = 10076
	CodeStoreFailed    = 10077 // a limit of the stream: it is full
	CodeStreamBytes    = 10122 // more than the account allows for one stream
	CodeDuplicateOnWay = 10158 // a record with the same id is being stored
	CodeWrongLastOnWay = 10164 // the fence is being moved, or the lane's last record is still counted as on its way
)
