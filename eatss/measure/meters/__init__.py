"""Ways to learn what a card draws: one protocol, several sensors, traces that can be replayed."""
