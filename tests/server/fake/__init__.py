"""A child without torch: the same door as the compiler's, a scripted life behind it."""
