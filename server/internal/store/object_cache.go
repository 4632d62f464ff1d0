package store

// DropObjectCache forgets the cached objects of a destination, as when its
// credentials have changed.
func (tx *Tx) DropObjectCache(destinationID int64) error {
	_, err := tx.exec("DELETE FROM object_caches WHERE destination_id = ?", destinationID)
	return err
}
