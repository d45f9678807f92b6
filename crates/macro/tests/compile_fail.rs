//! What `#[task]` refuses, and at which word.

#[test]
fn wrong_notations_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
