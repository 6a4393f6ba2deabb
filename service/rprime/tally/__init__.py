"""Count confusion tables by a database or cluster engine, where the predictions are stored."""
