// This source is the one that a target of precompiled headers needs.
