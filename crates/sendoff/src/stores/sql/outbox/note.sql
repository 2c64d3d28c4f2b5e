{insert_if_new} {meta} (name, value) VALUES ({:name}, {:value}) {or_leave}
