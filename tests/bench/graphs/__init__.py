"""First view of a large graph, beside Netron and Model Explorer on the same graph."""
