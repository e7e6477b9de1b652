//! Whole stores under test.
