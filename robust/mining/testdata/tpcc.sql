-- What workload/tpcc does.
NewOrder (:w, :d, :c, :items):
  SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
  SELECT w_tax FROM warehouse WHERE w_id = :w;
  SELECT d_next_o_id, d_tax INTO :o, :tax FROM district WHERE d_w_id = :w AND d_id = :d FOR UPDATE;
  :next = :o + 1;
  UPDATE district SET d_next_o_id = :next WHERE d_w_id = :w AND d_id = :d;
  INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_ol_cnt) VALUES (:w, :d, :o, :c, :count);
  INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (:w, :d, :o);
  FOR EACH :number, :i, :sw, :n, :remote IN :items LOOP
    SELECT i_price INTO :price FROM item WHERE i_id = :i;
    SELECT s_quantity INTO :quantity FROM stock WHERE s_w_id = :sw AND s_i_id = :i FOR UPDATE;
    :quantity = less(:quantity, :n);
    UPDATE stock SET s_quantity = :quantity, s_ytd = s_ytd + :n, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote
      WHERE s_w_id = :sw AND s_i_id = :i;
    INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivered, ol_quantity, ol_amount)
      VALUES (:w, :d, :o, :number, :i, :sw, 0, :n, :n * :price);
  END LOOP;
COMMIT;

Payment (:w, :d, :c, :last, :amount):
  UPDATE warehouse SET w_ytd = w_ytd + :amount WHERE w_id = :w;
  UPDATE district SET d_ytd = d_ytd + :amount WHERE d_w_id = :w AND d_id = :d;
  IF :byName THEN
    SELECT c_id, c_first INTO :c, :first FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_last = :last ORDER BY c_first;
  END IF;
  UPDATE customer SET c_balance = c_balance - :amount, c_ytd_payment = c_ytd_payment + :amount, c_payment_cnt = c_payment_cnt + 1
    WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
  SELECT c_credit, c_data INTO :credit, :data FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
  IF :credit = 'BC' THEN
    :data = paid(:data);
    UPDATE customer SET c_data = :data WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
  END IF;
  INSERT INTO history (h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_amount) VALUES (:w, :d, :c, :w, :d, :amount);
COMMIT;

OrderStatus (:w, :d, :c, :last):
  IF :byName THEN
    SELECT c_id, c_first INTO :c, :first FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_last = :last ORDER BY c_first;
  END IF;
  SELECT o_id INTO :o FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c ORDER BY o_id DESC LIMIT 1;
  IF NOT FOUND THEN COMMIT; END IF;
  SELECT ol_i_id, ol_quantity, ol_amount FROM order_line WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o;
COMMIT;

Delivery (:w, :carrier):
  FOR :d IN districts LOOP
    SELECT no_o_id INTO :o FROM new_order WHERE no_w_id = :w AND no_d_id = :d ORDER BY no_o_id LIMIT 1 FOR UPDATE;
    IF FOUND THEN
      DELETE FROM new_order WHERE no_w_id = :w AND no_d_id = :d AND no_o_id = :o;
      SELECT o_c_id INTO :c FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_id = :o;
      UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w AND o_d_id = :d AND o_id = :o;
      UPDATE order_line SET ol_delivered = 1 WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o;
      SELECT SUM(ol_amount) INTO :amount FROM order_line WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o;
      UPDATE customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
    END IF;
  END LOOP;
COMMIT;

StockLevel (:w, :d, :threshold):
  SELECT d_next_o_id INTO :next FROM district WHERE d_w_id = :w AND d_id = :d;
  SELECT COUNT(DISTINCT s_i_id) INTO :short FROM order_line JOIN stock ON s_i_id = ol_i_id AND s_w_id = ol_w_id
    WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id >= :next - 20 AND ol_o_id < :next AND s_quantity < :threshold;
COMMIT;
