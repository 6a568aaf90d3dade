package record

import "encoding/binary"

// A fence is what stands on the subject of a lane's fence: a version, and the epoch of the lane's holder.

const fenceVersion = 1

// Fence returns the fence of a holder's epoch.
func Fence(epoch uint64) []byte { return binary.AppendUvarint([]byte{fenceVersion}, epoch) }

// ParseFence returns the epoch of a fence. It fails with errVersion or errRecord.
func ParseFence(b []byte) (epoch uint64, err error) {
	if len(b) < 2 || b[0] != fenceVersion {
		return 0, ErrVersion
	}
	epoch, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return 0, ErrBroken
	}
	return epoch, nil
}
