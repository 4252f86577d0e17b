-- TPC-C (TPC Benchmark C, revision 5.11, clause 2), in statements that read and write a row at once where Vandevoort,
-- Ketsman, Koch and Neven (EDBT 2023) have them so.

NewOrder [NO] (:w, :d, :c, :now, :lines, :local, :items):
  SELECT c_discount, c_last, c_credit INTO :discount, :last, :credit FROM Customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
  SELECT w_tax INTO :wtax FROM Warehouse WHERE w_id = :w;
  UPDATE District SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w AND d_id = :d RETURNING d_next_o_id - 1, d_tax INTO :o, :tax;
  INSERT INTO Orders VALUES (:w, :d, :o, :c, :now, NULL, :lines, :local);
  INSERT INTO NewOrder VALUES (:w, :d, :o);
  FOR EACH :line, :i, :sw, :n, :remote IN :items LOOP
    SELECT i_price, i_name, i_data INTO :price, :name, :data FROM Item WHERE i_id = :i;
    UPDATE Stock
      SET s_quantity = s_quantity - :n + CASE WHEN s_quantity - :n < 10 THEN 91 ELSE 0 END, s_ytd = s_ytd + :n,
          s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote
      WHERE s_w_id = :sw AND s_i_id = :i
      RETURNING s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10, s_data
      INTO :dist1, :dist2, :dist3, :dist4, :dist5, :dist6, :dist7, :dist8, :dist9, :dist10, :sdata;
    :dist = ofDistrict(:d);
    :amount = :n * :price;
    INSERT INTO OrderLine VALUES (:w, :d, :o, :line, :i, :sw, NULL, :n, :amount, :dist);
  END LOOP;
COMMIT;

-- Of the customers of one last name, the one in the middle pays.
Payment [Pay] (:w, :d, :c, :last, :amount, :now):
  UPDATE Warehouse SET w_ytd = w_ytd + :amount WHERE w_id = :w RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip;
  UPDATE District SET d_ytd = d_ytd + :amount WHERE d_w_id = :w AND d_id = :d
    RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip;
  IF :c IS NULL THEN
    SELECT c_id INTO :c FROM Customer WHERE c_w_id = :w AND c_d_id = :d AND c_last = :last ORDER BY c_first;
  END IF;
  UPDATE Customer
    SET c_balance = c_balance - :amount, c_ytd_payment = c_ytd_payment + :amount, c_payment_cnt = c_payment_cnt + 1
    WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c
    RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
              c_credit_lim, c_discount, c_balance;
  IF :credit = 'BC' THEN
    SELECT c_data INTO :data FROM Customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
    :data = withPayment(:data, :amount);
    UPDATE Customer SET c_data = :data WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
  END IF;
  :text = ofPayment(:w, :d);
  INSERT INTO History VALUES (:c, :d, :w, :d, :w, :now, :amount, :text);
COMMIT;

OrderStatus [OS] (:w, :d, :c, :last):
  IF :c IS NULL THEN
    SELECT c_id, c_first, c_middle, c_balance INTO :c, :first, :middle, :balance FROM Customer
      WHERE c_w_id = :w AND c_d_id = :d AND c_last = :last ORDER BY c_first;
  ELSE
    SELECT c_first, c_middle, c_last, c_balance INTO :first, :middle, :last, :balance FROM Customer
      WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
  END IF;
  SELECT o_id, o_entry_d, o_carrier_id INTO :o, :entry, :carrier FROM Orders
    WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c ORDER BY o_id DESC LIMIT 1;
  SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM OrderLine
    WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o;
COMMIT;

Delivery [Del] (:w, :carrier, :now):
  FOR EACH :d IN districts LOOP
    SELECT MIN(no_o_id) INTO :o FROM NewOrder WHERE no_w_id = :w AND no_d_id = :d;
    DELETE FROM NewOrder WHERE no_w_id = :w AND no_d_id = :d AND no_o_id = :o;
    UPDATE Orders SET o_carrier_id = :carrier WHERE o_w_id = :w AND o_d_id = :d AND o_id = :o RETURNING o_c_id INTO :c;
    UPDATE OrderLine SET ol_delivery_d = :now WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o;
    SELECT SUM(ol_amount) INTO :amount FROM OrderLine WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o;
    UPDATE Customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1
      WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
  END LOOP;
COMMIT;

-- How many items of the last twenty orders are short.
StockLevel [SL] (:w, :d, :threshold):
  SELECT d_next_o_id INTO :o FROM District WHERE d_w_id = :w AND d_id = :d;
  SELECT array_agg(DISTINCT ol_i_id) INTO :items FROM OrderLine
    WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id >= :o - 20 AND ol_o_id < :o;
  SELECT s_i_id FROM Stock WHERE s_w_id = :w AND s_i_id = ANY (:items) AND s_quantity < :threshold;
COMMIT;
