package simlog_test

func changesLeaders(*log) {}
func answersLate(*log)    {}
