//! Profiles are taken as long as there is room for them.

use super::{Profile, ProfileError};
use std::path::Path;

/// Whether there is room for one more profile.
pub(super) type Room<'a> = &'a mut dyn FnMut(&Profile) -> bool;

/// Takes a profile for which there is room.
pub(super) fn take(
    profile: Profile,
    profiles: &mut Vec<Profile>,
    has_room: Room<'_>,
    path: &Path,
) -> Result<(), ProfileError> {
    if !has_room(&profile) {
        return Err(ProfileError::NoRoom { path: path.to_owned(), number: profiles.len() + 1 });
    }
    profiles.push(profile);
    Ok(())
}
