"""Search spaces, declared: iterators and named filters, counted and sampled without a loop."""
