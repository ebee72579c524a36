"""Whether everything that is needed is here, and works: facts are gathered, then judged by pure functions."""
