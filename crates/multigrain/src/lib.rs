//! Facade: Machine + Program -> plan, run.
