package broker

import "testing"

// A cluster has one name, whichever edge is asked, and no other cluster has it.
func TestAClusterHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	one, two := testBroker(t, s, nil), testBroker(t, s, nil)
	other := testBroker(t, testServer(t, 1), nil)
	if one.Cluster() == "" || one.Cluster() != two.Cluster() || one.Cluster() == other.Cluster() {
		t.Errorf("two edges of one cluster say %q and %q, one of another %q", one.Cluster(), two.Cluster(), other.Cluster())
	}
}
