package admission

const (
	sparedFiles    = 256     // for the log, presence, the admin port and files
	maxConnections = 1 << 20 // where the system sets no limit
)

// roomForConnections returns how many connections the process has files for:
// nine tenths of what it may open beside what it needs itself. The last tenth
// is for those that are about to connect, and to be told that they can't.
func roomForConnections() int {
	files := openFiles()
	switch {
	case files == 0 || files > maxConnections:
		return maxConnections
	case files <= 2*sparedFiles: // the one who allows so few knows what for
		return max(1, int(files/2))
	}
	return int(files-sparedFiles) * 9 / 10
}
