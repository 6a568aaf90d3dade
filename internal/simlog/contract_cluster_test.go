package simlog_test

func cutsOffWhoDoesNotRead(*log) {}
func disconnects(*log)           {}
func isEmptyWhenMadeAnew(*log)   {}
func changesLeaders(*log)        {}
func answersLate(*log)           {}
