package broker

// Squeeze has each inbox keep no more than share/whole of Config.InboxBytes
// from now on. What it does not keep is read from the log when it is asked for, so
// nothing is lost by it: it spares memory and costs reads. What an inbox has already stays.
func (b *Broker) Squeeze(share, whole int) {
	b.dispatch.inboxBytes.Store(int64(b.cfg.InboxBytes) * int64(share) / int64(whole))
}
