//! Named weights.
