package directory

// Deaf has a Directory not listen to the log of agent.status, as when that fails.
func Deaf(c *Config) { c.deaf = true }
