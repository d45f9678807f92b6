//! Profiles: the alphabet, the parser of HMMER's files, and the model as the kernels read it.

pub mod alphabet;
