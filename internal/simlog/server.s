// A function of the package has its body in the server's.
