DELETE FROM {side} WHERE id {in_ids}
