{insert_if_new} {meta} (name, value) VALUES ({:name}, {:by}) {or_leave}
