"""Finding the fastest configurations of autotuned kernels within a time budget."""
