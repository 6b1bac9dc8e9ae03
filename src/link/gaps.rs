//! Checks of the link that are left out on purpose.
//!
//! In a build with the feature `open-link` a node can be told to believe every seal, or to take
//! recordings for the present; a test then shows that the simulated attacker gets through and is
//! reported. Without the feature the switch does not exist and all of this is `false`.

/// The switch: what this node does not check.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gaps {
    /// Every tag is good.
    #[cfg(feature = "open-link")]
    pub tags: bool,
    /// Every datagram is of now, and everybody is proven.
    #[cfg(feature = "open-link")]
    pub freshness: bool,
}

#[cfg(feature = "open-link")]
impl Gaps {
    pub(super) const fn tags(self) -> bool {
        self.tags
    }

    pub(super) const fn freshness(self) -> bool {
        self.freshness
    }
}

#[cfg(not(feature = "open-link"))]
impl Gaps {
    pub(super) const fn tags(self) -> bool {
        false
    }

    pub(super) const fn freshness(self) -> bool {
        false
    }
}
